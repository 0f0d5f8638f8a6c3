/* Reading XML with expat, which is loaded when the first file is named: hardly any job names one, and librondo.so needs
 * it for nothing else. The limits are far above what any machine's file needs, and low enough that a hostile one costs
 * nothing: a file of at most 8 MiB, 64 levels, 65536 elements. A document type is refused, so there are no entities but
 * the five that XML has. */
#include <dlfcn.h>
#include <errno.h>
#include <expat.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "topo/xml.h"

#define BYTES_MOST (8u << 20)
#define DEPTH_MOST 64
#define ELEMENTS_MOST 65536
#define ATTRS_MOST 64

/* What is needed of the library. */
static struct {
    __typeof__(XML_ParserCreate) *create;
    __typeof__(XML_ParserFree) *end;
    __typeof__(XML_SetUserData) *set_user;
    __typeof__(XML_SetElementHandler) *set_element;
    __typeof__(XML_SetStartDoctypeDeclHandler) *set_doctype;
    __typeof__(XML_Parse) *parse;
    __typeof__(XML_StopParser) *stop;
    __typeof__(XML_GetCurrentLineNumber) *line;
    __typeof__(XML_GetErrorCode) *code;
    __typeof__(XML_ErrorString) *text;
} expat;
static const char *const names[] = {"XML_ParserCreate",
                                    "XML_ParserFree",
                                    "XML_SetUserData",
                                    "XML_SetElementHandler",
                                    "XML_SetStartDoctypeDeclHandler",
                                    "XML_Parse",
                                    "XML_StopParser",
                                    "XML_GetCurrentLineNumber",
                                    "XML_GetErrorCode",
                                    "XML_ErrorString"};
#define COUNT (sizeof names / sizeof names[0])
_Static_assert(sizeof expat == COUNT * sizeof(void *), "a name for each function, a function for each name");

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool loaded;

static void load(void)
{
    void *library = dlopen("libexpat.so.1", RTLD_NOW | RTLD_LOCAL), **member = (void **)(void *)&expat;

    loaded = library != NULL;
    for (size_t i = 0; i < COUNT && loaded; i++)
        loaded = (member[i] = dlsym(library, names[i])) != NULL;
}

typedef struct reading {
    XML_Parser parser;
    rd_xml_t *root, *at;
    int depth, elements;
    const char *refused; /* why it was stopped here; NULL: it was not */
} reading_t;

static void stop(reading_t *r, const char *why)
{
    if (!r->refused)
        r->refused = why;
    expat.stop(r->parser, XML_FALSE);
}

static void XMLCALL begin(void *arg, const XML_Char *name, const XML_Char **attrs)
{
    reading_t *r = arg;
    rd_xml_t *e;

    if (r->refused)
        return;
    if (++r->depth > DEPTH_MOST || ++r->elements > ELEMENTS_MOST) {
        stop(r, "it has more than 64 levels or 65536 elements");
        return;
    }
    if (!(e = rd_xml_make(r->at, name))) {
        stop(r, "there is no memory");
        return;
    }
    r->at = e;
    r->root = r->root ? r->root : e;
    e->line = (int)expat.line(r->parser);
    for (int i = 0; attrs[i]; i += 2)
        if (i / 2 == ATTRS_MOST || strlen(attrs[i + 1]) > 1000) {
            stop(r, "an element has too many attributes, or one that is too long");
            return;
        } else if (rd_xml_put(e, attrs[i], "%s", attrs[i + 1]) != 0) {
            stop(r, "there is no memory");
            return;
        }
}

static void XMLCALL end(void *arg, const XML_Char *name)
{
    reading_t *r = arg;

    (void)name;
    if (r->refused)
        return;
    r->depth--;
    r->at = r->at->parent;
}

static void XMLCALL doctype(void *arg, const XML_Char *name, const XML_Char *system, const XML_Char *public, int inside)
{
    (void)name, (void)system, (void)public, (void)inside;
    stop(arg, "it has a document type, which such a file must not have");
}

static rondo_result_t feed(reading_t *r, FILE *f, const char *file, const char *variable)
{
    char block[4096];
    size_t all = 0, n;

    do {
        n = fread(block, 1, sizeof block, f);
        all += n;
        if (all > BYTES_MOST)
            r->refused = "it is longer than 8 MiB";
        else if (expat.parse(r->parser, block, (int)n, n == 0) == XML_STATUS_OK)
            continue;
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "%s=%.200s, line %d, cannot be read: %s", variable, file,
                        (int)expat.line(r->parser), r->refused ? r->refused : expat.text(expat.code(r->parser)));
    } while (n > 0);
    return ferror(f) ? rd_error(NULL, RONDO_ERR_SYSTEM, "%s=%.200s: %s", variable, file, strerror(errno))
                     : RONDO_SUCCESS;
}

rondo_result_t rd_xml_read(rd_xml_t **root, const char *file, const char *variable)
{
    reading_t r = {.parser = NULL};
    FILE *f = rd_file_read(file);
    rondo_result_t result;

    if (!f)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "%s=%.200s: %s", variable, file, strerror(errno));
    pthread_once(&once, load);
    if (!loaded) {
        fclose(f);
        return rd_error(NULL, RONDO_ERR_UNSUPPORTED,
                        "%s=%.200s: NCCL's XML is read by expat, and there is no libexpat.so.1 here", variable, file);
    }
    if (!(r.parser = expat.create(NULL))) {
        fclose(f);
        return rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory to read %.200s", file);
    }
    expat.set_user(r.parser, &r);
    expat.set_element(r.parser, begin, end);
    expat.set_doctype(r.parser, doctype);
    result = feed(&r, f, file, variable);
    expat.end(r.parser);
    fclose(f);
    if (result == RONDO_SUCCESS)
        *root = r.root;
    else
        rd_xml_free(r.root);
    return result;
}
