/* SPDX-License-Identifier: Apache-2.0 */
/* declarations.h: the functions that the public headers declare, for tests that have something to say of each. Each
 * declaration is a line `WEFT_API type name(…`: the name stands before the first parenthesis. */
#ifndef WEFT_TEST_DECLARATIONS_H
#define WEFT_TEST_DECLARATIONS_H

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls fn for each function of one header; returns how many there are. */
static inline int declarations_of(const char *header, void (*fn)(const char *header, const char *name))
{
    char line[256];
    int functions = 0;
    FILE *file = fopen(header, "r");
    while (file && fgets(line, sizeof line, file)) {
        char *const end = strchr(line, '('), *name = end;
        if (strncmp(line, "WEFT_API ", 9) != 0 || !end)
            continue;
        while (name[-1] != ' ' && name[-1] != '*')
            name--;
        *end = '\0';
        fn(header, name);
        functions++;
    }
    if (file)
        fclose(file);
    return functions;
}

/* The same for all headers of libweft, and for viz.h if asked. */
static inline int public_declarations(int with_viz, void (*fn)(const char *header, const char *name))
{
    char pattern[512];
    int functions = 0;
    glob_t headers = {0};
    snprintf(pattern, sizeof pattern, "%s/include/weft/*.h", getenv("WEFT_SOURCE"));
    if (glob(pattern, 0, NULL, &headers) != 0)
        return 0;
    for (size_t i = 0; i < headers.gl_pathc; i++)
        if (with_viz || !strstr(headers.gl_pathv[i], "/viz.h"))
            functions += declarations_of(headers.gl_pathv[i], fn);
    globfree(&headers);
    return functions;
}

#endif
