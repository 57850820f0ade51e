/* SPDX-License-Identifier: Apache-2.0 */
/* report.h: what the parts of weft report share: the page that it fills (report.html), made a C array by
 * codegen/embed.py, and the data in it. */
#ifndef WEFT_TOOLS_REPORT_H
#define WEFT_TOOLS_REPORT_H

extern const char weft_report_html[];

struct weft_arena;
struct weft_graph;
struct weft_text;
/* report_scopes.c: scopes and layers of a plan's graph, as one object. Under weft_protected. */
void report_print_scopes(const struct weft_graph *graph, struct weft_arena *arena, struct weft_text *text);

#endif
