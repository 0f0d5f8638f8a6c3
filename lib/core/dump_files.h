/* Files of dumps, in the formats of RONDO_DUMP_FORMAT, which is a list. A file is made whole, or is not there; nothing
 * is written over. */
#ifndef RD_CORE_DUMP_FILES_H
#define RD_CORE_DUMP_FILES_H

#include "monitor/streams.h"

typedef enum rd_dump_format { RD_DUMP_AS_JSON, RD_DUMP_AS_FR, RD_DUMP_AS_CHROME, RD_DUMP_FORMATS } rd_dump_format_t;

/* Does the list name the format? "rondo" is its own, which is JSON. */
bool rd_dump_format_wanted(const char *list, rd_dump_format_t format);

/* Writes the file: of JSON and of PyTorch's recorder of one process, of Chrome's of all of the dump. `streams` is for
 * PyTorch's alone. Returns 0 or an error; EEXIST: there is such a file. */
int rd_dump_file(const char *path, rd_dump_format_t format, const rd_dump_t *dump, const rd_streams_t *streams,
                 int process);

/* Where a file of the folder stands: of a rank, or of a process by its number. */
void rd_dump_file_path(char *path, size_t room, const char *folder, rd_dump_format_t format, int number);
/* Where this process's dump number `serial` stands in a folder that others write to, too: its file, or its own folder.
 */
void rd_dump_own_path(char *path, size_t room, const char *folder, rd_dump_format_t format, int serial,
                      const rd_dump_t *dump, int process);
void rd_dump_own_folder(char *path, size_t room, const char *folder, int serial);

#endif
