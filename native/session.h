// session.h: what session.c needs of its parts at the end.
#ifndef DQI_SESSION_H
#define DQI_SESSION_H

#include "dqi.h"

// Frees an interface and its event tap; the engine is closed already.
void dqi_iface_free(dq_iface *i);

#endif
