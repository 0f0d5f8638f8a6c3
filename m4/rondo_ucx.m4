dnl RONDO_UCX: the transport between nodes. Without it a communicator lives on one node. Nothing is linked with UCX_LIBS:
dnl the library loads UCX when it needs it (lib/ucx/ucx_load.c), and looks for it in the folder of --with-ucx=DIR first.
AC_DEFUN([RONDO_UCX], [
  RONDO_DEPENDENCY([ucx], [UCX, the transport between nodes], [ucx], [1.11], [-lucp -lucs],
    [ucp/api/ucp.h],
    [[ucp_request_param_t p = {0};
      (void)ucp_tag_send_nbx((ucp_ep_h)0, 0, 0, 0, &p);
      (void)ucp_am_send_nbx((ucp_ep_h)0, 0, 0, 0, 0, 0, &p);
      return (int)ucp_worker_progress((ucp_worker_h)0);]])
  AS_IF([test $rondo_ucx = yes],
    [AC_DEFINE([HAVE_UCX], [1], [the transport over UCX is built])],
    [rondo_ucx_what="$rondo_ucx_what: one node only"])
  AM_CONDITIONAL([HAVE_UCX], [test $rondo_ucx = yes])
])
