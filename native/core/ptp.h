// ptp.h: PTP hardware clocks, for engines and their interfaces.
#ifndef DQI_PTP_H
#define DQI_PTP_H

#include "core/core.h"

#include <linux/ptp_clock.h>

// Returns the index of the clock that timestamps an interface's packets (/dev/ptpINDEX); -1: it has no clock,
// or there is no such interface. A system call; control thread.
int dqi_ptp_of(const char *netdev);
// Adds to the session's report which clock an interface has and its offset from the system clock, or that it
// has none.
void dqi_ptp_note(dq_session *s, const char *iface, const char *netdev);
// Returns the device clock's offset from n readings of system, device and system clock, by the shortest
// reading; *within: half of its duration. Pure.
int64_t dqi_ptp_offset(const struct ptp_clock_time (*readings)[3], uint32_t n, int64_t *within);

#endif
