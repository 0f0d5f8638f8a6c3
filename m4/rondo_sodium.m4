dnl RONDO_SODIUM: the bootstrap's hashes and MACs. Always needed. Linked statically where a position-independent
dnl libsodium.a exists, so that an installed librondo does not depend on the version of somebody's libsodium.so.
dnl Debian's is position-independent for executables only; it goes into a shared library whose version script keeps its
dnl symbols inside, because they then resolve where they are.
AC_DEFUN([RONDO_SODIUM], [
  RONDO_DEPENDENCY([sodium], [libsodium, needed for the bootstrap], [libsodium], [1.0.12], [-lsodium],
    [sodium.h], [[return sodium_init() + (int)crypto_auth_hmacsha256_bytes();]])
  AS_IF([test $rondo_sodium = no],
    [AC_MSG_ERROR([rondo needs libsodium: install libsodium-dev (Debian, Ubuntu), or name it by --with-sodium=DIR])])
  rondo_shared_sodium=$SODIUM_LIBS
  rondo_static_sodium=`AS_ECHO(["$SODIUM_LIBS"]) | $SED 's/-lsodium/-l:libsodium.a/'`
  AC_CACHE_CHECK([for a libsodium.a that can go into a shared library], [rondo_cv_sodium_static], [
    rondo_save_CFLAGS=$CFLAGS
    rondo_save_LDFLAGS=$LDFLAGS
    rondo_save_LIBS=$LIBS
    CFLAGS="$CFLAGS -fPIC $SODIUM_CFLAGS"
    LDFLAGS="$LDFLAGS -shared -Wl,-z,text -Wl,--version-script=$srcdir/lib/rondo.map"
    LIBS="$rondo_static_sodium $LIBS"
    AC_LINK_IFELSE([AC_LANG_SOURCE([[
#include <sodium.h>
int rondo_probe(void);
int rondo_probe(void)
{
    unsigned char out[32];
    return sodium_init() + crypto_generichash(out, sizeof out, out, 0, out, 16);
}]])], [rondo_cv_sodium_static=yes], [rondo_cv_sodium_static=no])
    CFLAGS=$rondo_save_CFLAGS
    LDFLAGS=$rondo_save_LDFLAGS
    LIBS=$rondo_save_LIBS
  ])
  AS_IF([test $rondo_cv_sodium_static = yes],
    [SODIUM_LIBS=$rondo_static_sodium
     rondo_sodium_what="$rondo_sodium_what, linked statically"],
    [rondo_sodium_what="$rondo_sodium_what, shared"])
  dnl What who links librondo.a must add.
  AC_SUBST([SODIUM_PC_LIBS], [$rondo_shared_sodium])
])
