/* Names that variables and their values had in earlier releases: they work like the present names, and a line of the
 * log gives the present name. */
#ifndef RD_BASE_ENV_ALIAS_H
#define RD_BASE_ENV_ALIAS_H

/* Returns the present name of a variable that was renamed; `name` itself if it was not. */
const char *rd_env_alias_now(const char *name);

/* Returns the former name of the variable `name`; NULL if it always had this one. */
const char *rd_env_alias_old(const char *name);

/* Returns the present form of a word that may be the value of the variable `name`; `word` itself if it was not renamed.
 */
const char *rd_env_alias_word(const char *name, const char *word);

#endif
