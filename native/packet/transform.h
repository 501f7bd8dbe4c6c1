// transform.h: applies a flow's actions to one frame: pushes and pops VLAN tags and tunnels (VXLAN, RFC 7348;
// GRE, RFC 2784 and 2890; NVGRE, RFC 7637).
//
// Headers are pushed into the room before a frame and removed by moving its start: the following bytes stay
// in place. Nothing outside the frame and its room is accessed, whatever its headers contain. No allocation.
#ifndef DQI_TRANSFORM_H
#define DQI_TRANSFORM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/dq_core.h"
#include "packet/dq_rules.h"

enum { DQI_TAG_LEN = 4, DQI_TYPE_TEB = 0x6558, DQI_ENCAP_MAX = 70, DQI_VXLAN_HAS_VNI = 0x08, DQI_DONE = -1 };

// A prepared action. For a tunnel: the outer header with lengths of 0, and the sum of its IPv4 header, or of
// the IPv6 addresses and protocol.
typedef struct dqi_act {
    uint8_t kind, tunnel;
    bool spread; // the UDP source port is a hash of the inner frame
    bool ipv6;   // version of the outer header
    uint16_t tpid, tci, protocol, udp_dst;
    uint32_t id;
    uint32_t header_len, ip_sum;
    uint8_t header[DQI_ENCAP_MAX];
} dqi_act;

// The actions of one flow, in order.
typedef struct dqi_acts {
    uint32_t n;
    uint32_t grows;   // maximum bytes that they prepend to a frame
    uint32_t shrinks; // maximum bytes that they remove from a frame, without IPv4 and GRE options
    dqi_act act[DQ_RULE_MAX_ACTIONS];
} dqi_acts;

// A frame being transformed. rest: bytes in further segments, which are not inspected.
typedef struct dqi_frame {
    uint8_t *p;
    uint32_t len;  // bytes at p
    uint32_t rest; // following bytes in other segments; an action may truncate them
    uint32_t room; // writable bytes before p
} dqi_frame;

// Prepares n actions. INVALID_PARAMETER: more than DQ_RULE_MAX_ACTIONS, an unknown kind, or headers of more
// than DQ_HEADROOM bytes.
int dqi_acts_make(const dq_action *actions, uint32_t n, dqi_acts *out, dq_diag *diag);

// Returns the number of tags at the start of a frame, of which len bytes are available.
uint32_t dqi_tags(const uint8_t *p, uint32_t len);
// Returns the length of the GRE header with options at p, of which len bytes are available; 0: not supported.
uint32_t dqi_gre_len(const uint8_t *p, uint32_t len);
// Reports whether such a header, of 8 bytes, is NVGRE.
bool dqi_is_nvgre(const uint8_t *p);
// Reports whether a GRE payload, len bytes of which the first `there` are at p, is an IP packet of the
// protocol without Ethernet header, as with Linux's gre and RFC 2784: its own header must be valid.
bool dqi_is_packet(uint16_t protocol, const uint8_t *p, uint32_t there, uint32_t len);

// Applies the actions. Returns DQI_DONE, or the reason (dq_reason) to drop the frame, which may be partly
// changed by then. longest: maximum bytes of the resulting frame, not counting a VLAN tag. Any thread.
int dqi_acts_apply(const dqi_acts *a, dqi_frame *f, uint32_t longest);

#endif
