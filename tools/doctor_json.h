/* rondo-info doctor --json: one document of JSON in place of the lines for people, with the same findings.
 * doc/man/rondo-info.1 lists its fields, whose names stay. Off, all but doctor_json_begin do nothing. */
#ifndef RD_DOCTOR_JSON_H
#define RD_DOCTOR_JSON_H

#include "doctor_nodes.h"

/* From here on nothing else may be printed. */
void doctor_json_begin(bool network);
bool doctor_json_is_on(void);
void doctor_json_area(const char *title); /* of the findings that follow */
void doctor_json_finding(info_verdict_t verdict, const char *name, const char *what, const char *advice);
/* The nodes of a job, and what was measured between them; before the first finding. */
void doctor_json_nodes(const nodes_view_t *view, int nranks);
void doctor_json_end(const int found[3]);

#endif
