/* An event as the descriptor of a plugin's version. */
#ifndef RD_PROFILE_PLUGIN_DESCRIBE_H
#define RD_PROFILE_PLUGIN_DESCRIBE_H

#include "profile/plugin.h"

typedef union rd_plugin_descriptor {
    rd_plugin_v1_t v1;
    rd_plugin_v2_t v2;
    rd_plugin_v3_t v3;
    rd_plugin_v4_t v4;
} rd_plugin_descriptor_t;

/* Fills a descriptor, which is zero. */
void rd_plugin_describe(rd_plugin_descriptor_t *d, int version, const rd_plugin_event_t *event);

#endif
