/* Names that variables and their words had in earlier releases: they work as the present ones do, and a line of the log
 * says what they are called now. */
#ifndef RD_BASE_ENV_ALIAS_H
#define RD_BASE_ENV_ALIAS_H

/* The present name of a variable that was renamed; `name` itself if it was not. */
const char *rd_env_alias_now(const char *name);

/* The former name of the variable `name`; NULL: it always had this one. */
const char *rd_env_alias_old(const char *name);

/* The present form of a word that may be the value of the variable `name`; `word` itself if it was not renamed. */
const char *rd_env_alias_word(const char *name, const char *word);

#endif
