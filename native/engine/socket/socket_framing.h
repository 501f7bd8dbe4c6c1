// socket_framing.h: splits a byte stream into messages, and writes the prefixes of sent messages.
//
// The cutter works in place: bytes are read into a buffer and messages are slices of it. A message that does
// not fit into the rest of its buffer is moved to the start of another. The code is independent of sockets,
// pools and bursts.
#ifndef DQI_SOCKET_FRAMING_H
#define DQI_SOCKET_FRAMING_H

#include "core/dq_core.h"

typedef struct dqi_framing {
    int32_t kind;       // dq_framing
    uint32_t width;     // bytes of the prefix; 0 for DQ_FRAMING_FIXED
    uint32_t fixed;     // DQ_FRAMING_FIXED: bytes of a message
    uint32_t max_bytes; // longest message
    bool le, incl;      // little endian; the length includes the prefix
} dqi_framing;

// Unread bytes of a connection: base[from..to) of a buffer of `room` bytes.
typedef struct dqi_cutter {
    uint8_t *base; // NULL: no buffer
    uint32_t room, from, to;
    bool known; // the prefix was read; the message has `need` bytes
    uint32_t need;
} dqi_cutter;

// Extracts the next complete message. Returns 1 (*len bytes at base + *at), 0 if more bytes are needed, -1 on
// an invalid prefix (the stream is lost). Never blocks.
int dqi_cut_next(const dqi_framing *f, dqi_cutter *c, uint32_t *at, uint32_t *len);
// Returns true if the current message can be completed in its buffer; room - to > 0 then.
bool dqi_cut_fits(const dqi_framing *f, const dqi_cutter *c);
// Switches to another buffer of room bytes (at least width + max_bytes) and copies the unread bytes. A prefix
// starts at its first byte, a message at byte `width`.
void dqi_cut_move(const dqi_framing *f, dqi_cutter *c, uint8_t *base, uint32_t room);
// Returns the received bytes of an incomplete message.
uint32_t dqi_cut_pending(const dqi_framing *f, const dqi_cutter *c);

// Writes the prefix of a message of len bytes to out and returns its width, or -1 if this framing cannot
// encode the message.
int dqi_framing_prefix(const dqi_framing *f, uint64_t len, uint8_t out[8]);

#endif
