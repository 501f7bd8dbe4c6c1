// note.c: lines of a session's report.
#include "core/core.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void dqi_note(dq_session *s, const char *fmt, ...) {
    dqi_core *core = dqi_core_of(s);
    va_list ap;
    va_start(ap, fmt);
    char *text = NULL;
    if (vasprintf(&text, fmt, ap) < 0) text = NULL;
    va_end(ap);
    dqi_lock(&core->notes_lock);
    if (text && core->n_notes < DQI_MAX_NOTES) {
        core->notes[core->n_notes++] = text;
        text = NULL;
    }
    dqi_unlock(&core->notes_lock);
    free(text);
}

bool dq_session_report(const dq_session *s, uint32_t i, char *buf, size_t len) {
    dqi_core *core = dqi_core_of(s);
    dqi_lock(&core->notes_lock);
    const char *text = i < core->n_notes ? core->notes[i] : NULL; // lives as long as the session
    dqi_unlock(&core->notes_lock);
    if (text) snprintf(buf, len, "%s", text);
    return text != NULL;
}

void dqi_notes_free(dqi_core *core) {
    for (uint32_t i = 0; i < core->n_notes; i++)
        free(core->notes[i]);
}
