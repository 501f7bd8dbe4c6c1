// group.h: multicast groups of interfaces.
#ifndef DQI_GROUP_H
#define DQI_GROUP_H

#include "core/socket_addr.h"

// A group and its source filter; source family 0: any source.
typedef struct dqi_group {
    dqi_sockaddr group, source;
} dqi_group;

// Parses a group and its source ("" or NULL: any) for the named interface. INVALID_PARAMETER on error.
int dqi_group_parse(const char *iface, const char *group, const char *source, dqi_group *out, dq_diag *diag);
bool dqi_group_same(const dqi_group *a, const dqi_group *b);
// Reports whether one is for any source and the other for a chosen one: both can't be reported to routers.
bool dqi_group_clash(const dqi_group *a, const dqi_group *b);
// Returns the 4 or 16 bytes of an address.
const uint8_t *dqi_group_bytes(const dqi_sockaddr *a);
// Writes the Ethernet address of a group of this family (RFC 1112, RFC 2464).
void dqi_group_mac(int family, const uint8_t *group, uint8_t mac[6]);
// Formats why a group, as text, could not be joined or left. EINVAL: dqi_group_clash.
int dqi_group_fail(const char *iface, const char *group, int err, dq_diag *diag);

#endif
