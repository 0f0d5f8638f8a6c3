# Net plugins of NCCL's between played nodes. The test's own is built once for each version of NCCL's interface, and once
# with a function missing, as a module that nobody installs. A switch that adds, for CollNet, likewise.
check_PROGRAMS += test/netplugin/plugins
test_netplugin_plugins_SOURCES = test/netplugin/plugins.c test/netplugin/trial.h
test_netplugin_plugins_LDADD = libtest.la
net_plugin_ldflags = -module -avoid-version -rpath $(abs_builddir) -shared
check_LTLIBRARIES += libnccl-net-test8.la
libnccl_net_test8_la_SOURCES = test/netplugin/net_plugin.c test/netplugin/plugin.h
libnccl_net_test8_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=8
libnccl_net_test8_la_LDFLAGS = $(net_plugin_ldflags)
check_LTLIBRARIES += libnccl-net-test9.la
libnccl_net_test9_la_SOURCES = test/netplugin/net_plugin.c test/netplugin/plugin.h
libnccl_net_test9_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=9
libnccl_net_test9_la_LDFLAGS = $(net_plugin_ldflags)
check_LTLIBRARIES += libnccl-net-test10.la
libnccl_net_test10_la_SOURCES = test/netplugin/net_plugin.c test/netplugin/plugin.h
libnccl_net_test10_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=10
libnccl_net_test10_la_LDFLAGS = $(net_plugin_ldflags)
check_LTLIBRARIES += libnccl-net-test11.la
libnccl_net_test11_la_SOURCES = test/netplugin/net_plugin.c test/netplugin/plugin.h
libnccl_net_test11_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=11
libnccl_net_test11_la_LDFLAGS = $(net_plugin_ldflags)
check_LTLIBRARIES += libnccl-net-lacking.la
libnccl_net_lacking_la_SOURCES = test/netplugin/net_plugin.c test/netplugin/plugin.h
libnccl_net_lacking_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=10 -DLACKS
libnccl_net_lacking_la_LDFLAGS = $(net_plugin_ldflags)
check_PROGRAMS += test/netplugin/collnet
test_netplugin_collnet_SOURCES = test/netplugin/collnet.c test/netplugin/trial.h
test_netplugin_collnet_LDADD = libtest.la
check_LTLIBRARIES += libnccl-net-switch8.la
libnccl_net_switch8_la_SOURCES = test/netplugin/switch_plugin.c test/netplugin/plugin.h
libnccl_net_switch8_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=8
libnccl_net_switch8_la_LDFLAGS = $(net_plugin_ldflags)
check_LTLIBRARIES += libnccl-net-switch9.la
libnccl_net_switch9_la_SOURCES = test/netplugin/switch_plugin.c test/netplugin/plugin.h
libnccl_net_switch9_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=9
libnccl_net_switch9_la_LDFLAGS = $(net_plugin_ldflags)
check_LTLIBRARIES += libnccl-net-switch10.la
libnccl_net_switch10_la_SOURCES = test/netplugin/switch_plugin.c test/netplugin/plugin.h
libnccl_net_switch10_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=10
libnccl_net_switch10_la_LDFLAGS = $(net_plugin_ldflags)
check_LTLIBRARIES += libnccl-net-switch11.la
libnccl_net_switch11_la_SOURCES = test/netplugin/switch_plugin.c test/netplugin/plugin.h
libnccl_net_switch11_la_CPPFLAGS = $(AM_CPPFLAGS) -DVERSION=11
libnccl_net_switch11_la_LDFLAGS = $(net_plugin_ldflags)
script_tests += \
	test/netplugin/fault.sh \
	test/netplugin/nodes.sh
