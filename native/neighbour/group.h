// group.h: multicast groups as interfaces join them.
#ifndef DQI_GROUP_H
#define DQI_GROUP_H

#include "core/socket_addr.h"

// A group, and the one source that is wanted of it; family 0: any.
typedef struct dqi_group {
    dqi_sockaddr group, source;
} dqi_group;

// Of the interface of this name: reads a group and its source ("" or NULL: any) from text. INVALID_PARAMETER.
int dqi_group_parse(const char *iface, const char *group, const char *source, dqi_group *out, dq_diag *diag);
bool dqi_group_same(const dqi_group *a, const dqi_group *b);
// True when one of them is a group of any source, the other of a chosen one: routers can't be told of both.
bool dqi_group_clash(const dqi_group *a, const dqi_group *b);
// The 4 or 16 bytes of an address.
const uint8_t *dqi_group_bytes(const dqi_sockaddr *a);
// The Ethernet address of a group of this family (RFC 1112, RFC 2464).
void dqi_group_mac(int family, const uint8_t *group, uint8_t mac[6]);
// Says in words why a group, as text, was not joined or left. EINVAL: dqi_group_clash.
int dqi_group_fail(const char *iface, const char *group, int err, dq_diag *diag);

#endif
