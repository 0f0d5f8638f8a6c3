#!/bin/sh
# cards.sh SRCDIR FILE... prints a line RD_CARD(x) for each card x that the files define.
srcdir=$1
shift
for file; do
    sed -n 's/^const rd_algo_t \(rd_algo_[a-z0-9_]*\) = .*/RD_CARD(\1)/p' "$srcdir/$file" || exit 1
done
