/* The text of a variable: from the environment, or else what rondo_setting_set has set. */
#ifndef RD_BASE_SETTING_H
#define RD_BASE_SETTING_H

#define RD_SETTING_BYTES 512

/* Returns the text, or NULL if the variable is not set. `text` holds RD_SETTING_BYTES; the result may point to it, or
 * to the environment's own text. */
const char *rd_setting_text(const char *name, char *text);

#endif
