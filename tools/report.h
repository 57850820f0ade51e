/* SPDX-License-Identifier: Apache-2.0 */
/* report.h: the page that weft report fills (report.html), made a C array by codegen/embed.py. */
#ifndef WEFT_TOOLS_REPORT_H
#define WEFT_TOOLS_REPORT_H

extern const char weft_report_html[];

#endif
