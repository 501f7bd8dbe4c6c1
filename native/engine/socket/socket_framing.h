// socket_framing.h: cutting a byte stream into messages, and the prefixes that make a stream of messages.
//
// The cutter works in place: bytes are read into a buffer, messages are slices of it. A message that can't
// end in the buffer that it began in is moved to the start of another. It knows nothing of sockets, pools or
// bursts.
#ifndef DQI_SOCKET_FRAMING_H
#define DQI_SOCKET_FRAMING_H

#include "core/dq_core.h"

typedef struct dqi_framing {
    int32_t kind;       // dq_framing
    uint32_t width;     // bytes of the prefix; 0 for DQ_FRAMING_FIXED
    uint32_t fixed;     // DQ_FRAMING_FIXED: bytes of a message
    uint32_t max_bytes; // longest message
    bool le, incl;      // little endian; the length counts the prefix
} dqi_framing;

// Where a connection's unread bytes are: base[from..to) of a buffer of `room` bytes.
typedef struct dqi_cutter {
    uint8_t *base; // NULL: no buffer
    uint32_t room, from, to;
    bool known; // the prefix was read: the message has `need` bytes
    uint32_t need;
} dqi_cutter;

// The next complete message: 1, and it is the *len bytes at base + *at; 0: more bytes are needed; -1: the
// prefix makes no sense (the stream is lost). Never blocks.
int dqi_cut_next(const dqi_framing *f, dqi_cutter *c, uint32_t *at, uint32_t *len);
// True when the message under way can be completed where it stands. Then room - to > 0.
bool dqi_cut_fits(const dqi_framing *f, const dqi_cutter *c);
// Goes on in another buffer of room bytes (at least width + max_bytes), taking the unread bytes along. A
// prefix starts at its first byte, a message's bytes at its `width`-th.
void dqi_cut_move(const dqi_framing *f, dqi_cutter *c, uint8_t *base, uint32_t room);
// Bytes of an incomplete message that have come.
uint32_t dqi_cut_pending(const dqi_framing *f, const dqi_cutter *c);

// Writes the prefix of a message of len bytes into out; its width. -1: such a message can't be sent in this
// framing.
int dqi_framing_prefix(const dqi_framing *f, uint64_t len, uint8_t out[8]);

#endif
