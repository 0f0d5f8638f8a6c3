dnl RONDO_DEPENDENCY(name, what it gives, pkg-config module, minimal version, plain libraries, header, body,
dnl                  [folder of the header below include])
dnl
dnl The common part of one optional library: --with-NAME=DIR, yes, no or nothing said (auto). `DIR` wins over
dnl pkg-config. Whatever is found must compile and link the little program (header, body) that uses what rondo uses, so
dnl an old or broken installation counts as missing. Missing though asked for ends configure here, once.
dnl Sets rondo_NAME (yes, no), NAME_CFLAGS and NAME_LIBS (upper case, substituted), rondo_NAME_what for the summary, and
dnl adds DIR's library folder to RONDO_RPATHS.
AC_DEFUN([RONDO_DEPENDENCY], [
  AC_ARG_WITH([$1],
    [AS_HELP_STRING([--with-$1=DIR|no], [$2 @<:@default: used if it is there@:>@])],
    [AS_IF([test "x$with_$1" = x], [with_$1=yes])], [with_$1=auto])
  m4_pushdef([RD_CFLAGS], m4_toupper([$1])[_CFLAGS])
  m4_pushdef([RD_LIBS], m4_toupper([$1])[_LIBS])
  rondo_$1=no
  RD_CFLAGS=
  RD_LIBS=
  rondo_$1_what="no (--with-$1=no)"
  AS_IF([test "$with_$1" != no], [
    AC_MSG_CHECKING([for $1])
    AS_CASE([$with_$1],
      [yes|auto], [
        AS_IF([test -n "$PKG_CONFIG" && $PKG_CONFIG --exists "$3 >= $4"], [
          RD_CFLAGS=`$PKG_CONFIG --cflags $3`
          RD_LIBS=`$PKG_CONFIG --libs $3`
          rondo_$1_what="yes, `$PKG_CONFIG --modversion $3`"
        ], [
          RD_LIBS="$5"
          rondo_$1_what="yes"
        ])
      ], [
        RD_CFLAGS="-I$with_$1/include[]m4_ifval([$8], [/$8])"
        rondo_$1_dir="$with_$1/lib"
        AS_IF([test -d "$with_$1/lib64"], [rondo_$1_dir="$with_$1/lib64"])
        RD_LIBS="-L$rondo_$1_dir $5"
        RONDO_RPATHS="$RONDO_RPATHS -R$rondo_$1_dir"
        rondo_$1_what="yes, $with_$1"
      ])
    dnl The compiler would look on in its own folders: a DIR without the header is not where the library is.
    AS_CASE([$with_$1], [yes|auto], [rondo_$1_there=yes],
      [AS_IF([test -e "$with_$1/include[]m4_ifval([$8], [/$8])/$6"], [rondo_$1_there=yes], [rondo_$1_there=no])])
    rondo_save_CPPFLAGS=$CPPFLAGS
    rondo_save_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $RD_CFLAGS"
    LIBS="$RD_LIBS $LIBS"
    AS_IF([test $rondo_$1_there = yes],
      [AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <]$6[>]], [$7])], [rondo_$1=yes])])
    CPPFLAGS=$rondo_save_CPPFLAGS
    LIBS=$rondo_save_LIBS
    AC_MSG_RESULT([$rondo_$1])
    AS_IF([test $rondo_$1 = no], [
      RD_CFLAGS=
      RD_LIBS=
      rondo_$1_what="no, not found"
      AS_IF([test "$with_$1" != auto], [
        AC_MSG_ERROR([--with-$1=$with_$1 was asked for, but no usable $1 (at least $4) was found: see config.log])
      ])
    ])
  ])
  AC_SUBST(RD_CFLAGS)
  AC_SUBST(RD_LIBS)
  AC_SUBST([RONDO_RPATHS])
  m4_popdef([RD_CFLAGS])
  m4_popdef([RD_LIBS])
])
