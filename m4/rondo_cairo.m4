dnl RONDO_CAIRO: the pictures of rondo-perf --plot and rondo-info --draw, --plot. Only these two programs link it.
AC_DEFUN([RONDO_CAIRO], [
  RONDO_DEPENDENCY([cairo], [cairo, for pictures of measurements and machines], [cairo-svg], [1.12], [-lcairo],
    [cairo-svg.h], [[return cairo_svg_surface_create_for_stream == 0;]], [cairo])
  AM_CONDITIONAL([HAVE_CAIRO], [test $rondo_cairo = yes])
])
