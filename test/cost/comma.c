/* Prices in a program whose LC_NUMERIC says a comma: what it writes has points, and it reads what others have written.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/prices.h"
#include "util/check.h"
#include "util/comma.h"

static void round_trip(const rd_prices_t *prices)
{
    char file[] = "/tmp/rondo-prices-XXXXXX", *text = NULL;
    int fd = mkstemp(file);
    size_t bytes = 0;
    rd_prices_t back = *rd_prices_builtin(0);
    FILE *memory = open_memstream(&text, &bytes), *f = fd < 0 ? NULL : fdopen(fd, "w");

    if (!memory || !f)
        exit(1);
    rd_prices_write(prices, memory);
    fclose(memory);
    CHECK(strchr(text, '.') && !strchr(text, ','), "%s", text);
    fputs(text, f);
    fclose(f);
    CHECK(rd_prices_read(&back, file, NULL) == RONDO_SUCCESS, "%s", rd_thread_error());
    free(text);
    memory = open_memstream(&text, &bytes);
    if (!memory)
        exit(1);
    rd_prices_write(&back, memory);
    fclose(memory);
    f = fopen(file, "r");
    for (char *at = text; f && *at; at++)
        if (fgetc(f) != (unsigned char)*at) {
            CHECK(0, "what was read is written otherwise, at %.30s", at);
            break;
        }
    if (f)
        fclose(f);
    free(text);
    remove(file);
}

int main(void)
{
    if (!comma_set())
        return 77;
    for (int table = 0; rd_prices_builtin(table); table++)
        round_trip(rd_prices_builtin(table));
    CHECK(strcmp(localeconv()->decimal_point, ",") == 0, "the program's locale is another one");
    printf("%d failures\n", failures);
    return failures != 0;
}
