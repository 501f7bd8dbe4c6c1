// ptp.h: PTP hardware clocks, for engines and their interfaces.
#ifndef DQI_PTP_H
#define DQI_PTP_H

#include "core/session.h"

#include <linux/ptp_clock.h>

// Index of the clock that stamps an interface's packets (/dev/ptpINDEX); -1: it has none, or there is no such
// interface. A system call; control thread.
int dqi_ptp_of(const char *netdev);
// Says in the session's report which clock an interface has and how far it is from the system's, or that it
// has none.
void dqi_ptp_note(dq_session *s, const char *iface, const char *netdev);
// The offset from n readings of system, clock, system, by the reading that took least; *within: half of what
// that took. Pure.
int64_t dqi_ptp_offset(const struct ptp_clock_time (*readings)[3], uint32_t n, int64_t *within);

#endif
