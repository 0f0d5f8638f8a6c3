/* Without expat no XML is read. */
#include "topo/xml.h"

rondo_result_t rd_xml_read(rd_xml_t **root, const char *file, const char *variable)
{
    (void)root;
    return rd_error(NULL, RONDO_ERR_UNSUPPORTED,
                    "%s=%.200s: NCCL's XML is read by expat, without which this rondo was built", variable, file);
}
