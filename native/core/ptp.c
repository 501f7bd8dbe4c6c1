// ptp.c: PTP hardware clocks: the available clocks, the clock of an interface, and a clock's offset from the
// system clock.
#include "core/ptp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define READINGS 15

static int64_t ns_of(const struct ptp_clock_time *t) { return (int64_t)t->sec * 1000000000 + t->nsec; }

int64_t dqi_ptp_offset(const struct ptp_clock_time (*readings)[3], uint32_t n, int64_t *within) {
    int64_t offset = 0;
    *within = INT64_MAX;
    for (uint32_t i = 0; i < n; i++) {
        int64_t before = ns_of(&readings[i][0]), took = ns_of(&readings[i][2]) - before;
        if (took < 0 || took / 2 >= *within) continue; // system clock stepped, or another reading is better
        *within = took / 2;
        offset = ns_of(&readings[i][1]) - (before + took / 2);
    }
    return offset;
}

// Reads the clock's offset by the most precise method of its driver; returns 0 or -errno.
static int read_offset(int fd, dq_ptp *out) {
    struct ptp_sys_offset_precise precise = {0};
    struct ptp_sys_offset_extended extended = {.n_samples = READINGS};
    struct ptp_sys_offset plain = {.n_samples = READINGS};
    if (ioctl(fd, PTP_SYS_OFFSET_PRECISE, &precise) == 0) {
        out->offset_ns = ns_of(&precise.device) - ns_of(&precise.sys_realtime);
        out->uncertainty_ns = 0;
        return 0;
    }
    if (ioctl(fd, PTP_SYS_OFFSET_EXTENDED, &extended) == 0) {
        out->offset_ns = dqi_ptp_offset(extended.ts, READINGS, &out->uncertainty_ns);
        return 0;
    }
    if (ioctl(fd, PTP_SYS_OFFSET, &plain) != 0) return -errno;
    struct ptp_clock_time r[READINGS][3]; // adjacent readings share a system time
    for (int i = 0; i < READINGS; i++)
        memcpy(r[i], &plain.ts[(ptrdiff_t)2 * i], sizeof r[i]);
    out->offset_ns = dqi_ptp_offset((const struct ptp_clock_time(*)[3])r, READINGS, &out->uncertainty_ns);
    return 0;
}

static void read_name(int index, char *name, int size) {
    char path[64];
    snprintf(path, sizeof path, "/sys/class/ptp/ptp%d/clock_name", index);
    FILE *f = fopen(path, "re");
    if (!f || !fgets(name, size, f)) name[0] = 0;
    if (f) fclose(f);
    name[strcspn(name, "\n")] = 0;
}

int dq_ptp_read(int index, dq_ptp *out) {
    char path[32];
    *out = (dq_ptp){.index = index};
    read_name(index, out->name, sizeof out->name);
    snprintf(path, sizeof path, "/dev/ptp%d", index);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return DQ_ESYS - errno;
    int err = read_offset(fd, out);
    close(fd);
    return err == 0 ? DQ_OK : DQ_ESYS + err;
}

uint32_t dq_ptp_list(int *index, uint32_t max) {
    DIR *d = opendir("/sys/class/ptp");
    uint32_t n = 0;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        int k;
        if (sscanf(e->d_name, "ptp%d", &k) == 1 && n++ < max) index[n - 1] = k;
    }
    if (d) closedir(d);
    return n;
}

int dqi_ptp_of(const char *netdev) {
    struct ethtool_ts_info info = {.cmd = ETHTOOL_GET_TS_INFO};
    struct ifreq r = {.ifr_data = (void *)&info};
    if (strlen(netdev) >= sizeof r.ifr_name) return -1;
    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", netdev);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    bool known = ioctl(fd, SIOCETHTOOL, &r) == 0;
    close(fd);
    return known ? info.phc_index : -1;
}

void dqi_ptp_note(dq_session *s, const char *iface, const char *netdev) {
    int index = dqi_ptp_of(netdev);
    dq_ptp p;
    if (index < 0) {
        dqi_note(s, "interface %s: no PTP clock", iface);
        return;
    }
    int err = dq_ptp_read(index, &p);
    if (err != DQ_OK)
        dqi_note(s, "interface %s: PTP clock ptp%d: %s", iface, index, dq_err_name(err));
    else
        dqi_note(s, "interface %s: PTP clock ptp%d (%s): %.9f s ahead of the system's clock, within %lld ns",
                 iface, index, p.name, (double)p.offset_ns / 1e9, (long long)p.uncertainty_ns);
}
