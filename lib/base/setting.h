/* The text of a variable: the environment's, or what rondo_setting_set has put behind it. */
#ifndef RD_BASE_SETTING_H
#define RD_BASE_SETTING_H

#define RD_SETTING_BYTES 512

/* NULL: neither. `text` holds RD_SETTING_BYTES; what is returned may be it, or the environment's own. */
const char *rd_setting_text(const char *name, char *text);

#endif
