// transform.h: what the actions of a flow do to one frame: VLAN tags and tunnels (VXLAN, RFC 7348; GRE, RFC
// 2784 and 2890; NVGRE, RFC 7637), on and off.
//
// Headers are pushed into the room before a frame and taken off by moving its start: the bytes behind them
// stay where they are. Nothing outside the frame and its room is touched, whatever the frame says of itself.
// No allocation.
#ifndef DQI_TRANSFORM_H
#define DQI_TRANSFORM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/dq_core.h"
#include "packet/dq_rules.h"

enum { DQI_TAG_LEN = 4, DQI_TYPE_TEB = 0x6558, DQI_ENCAP_MAX = 70, DQI_VXLAN_HAS_VNI = 0x08, DQI_DONE = -1 };

// An action made ready. Of a tunnel: the outer header, its lengths still 0, and the sum of its IPv4 header,
// or of the addresses and the protocol of IPv6.
typedef struct dqi_act {
    uint8_t kind, tunnel;
    bool spread; // the UDP source port is a hash of the inner frame
    bool ipv6;   // the outer header
    uint16_t tpid, tci, protocol, udp_dst;
    uint32_t id;
    uint32_t header_len, ip_sum;
    uint8_t header[DQI_ENCAP_MAX];
} dqi_act;

// The actions of one flow, in order.
typedef struct dqi_acts {
    uint32_t n;
    uint32_t grows;   // bytes that they put in front of a frame at most
    uint32_t shrinks; // bytes that they take away from a frame at most, IPv4 and GRE options aside
    dqi_act act[DQ_RULE_MAX_ACTIONS];
} dqi_acts;

// A frame under way. rest: bytes of it that lie in further segments; they are never looked at.
typedef struct dqi_frame {
    uint8_t *p;
    uint32_t len;  // bytes at p
    uint32_t rest; // bytes elsewhere behind them; an action may cut some off
    uint32_t room; // bytes before p that may be written
} dqi_frame;

// Makes n actions ready. INVALID_PARAMETER: more than DQ_RULE_MAX_ACTIONS, of no known kind, or headers of
// more than DQ_HEADROOM bytes.
int dqi_acts_make(const dq_action *actions, uint32_t n, dqi_acts *out, dq_diag *diag);

// Tags at the beginning of a frame, of which len bytes are there.
uint32_t dqi_tags(const uint8_t *p, uint32_t len);
// Length of the GRE header at p with its options, of which len bytes are there; 0: it is none that is known.
uint32_t dqi_gre_len(const uint8_t *p, uint32_t len);
// Whether such a header, of 8 bytes, is NVGRE's.
bool dqi_is_nvgre(const uint8_t *p);
// Whether what a GRE tunnel carries, len bytes of which the first `there` lie at p, is an IP packet of the
// protocol alone, as Linux's gre and RFC 2784 have it, and not a frame: its own header says so, intact.
bool dqi_is_packet(uint16_t protocol, const uint8_t *p, uint32_t there, uint32_t len);

// Carries the actions out. DQI_DONE, or the reason (dq_reason) for which the frame, of which some may be
// changed by then, has to be dropped. longest: bytes that the frame may have in the end, not counting a VLAN
// tag. Any thread.
int dqi_acts_apply(const dqi_acts *a, dqi_frame *f, uint32_t longest);

#endif
