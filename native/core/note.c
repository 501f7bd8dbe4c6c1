// note.c: lines of a session's report.
#include "core/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void dqi_note(dq_session *s, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *text = NULL;
    if (vasprintf(&text, fmt, ap) < 0) text = NULL;
    va_end(ap);
    dqi_lock(&s->notes_lock);
    if (text && s->n_notes < DQI_MAX_NOTES) {
        s->notes[s->n_notes++] = text;
        text = NULL;
    }
    dqi_unlock(&s->notes_lock);
    free(text);
}

bool dq_session_report(const dq_session *s, uint32_t i, char *buf, size_t len) {
    dq_session *own = (dq_session *)(uintptr_t)s;
    dqi_lock(&own->notes_lock);
    const char *text = i < s->n_notes ? s->notes[i] : NULL; // notes are never removed
    dqi_unlock(&own->notes_lock);
    if (text) snprintf(buf, len, "%s", text);
    return text != NULL;
}
