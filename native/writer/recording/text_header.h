// text_header.h: headers of PSRDADA files and of GUPPI RAW blocks: the script's keys, then what the engine
// knows of the data behind them. No side effects.
#ifndef DQI_TEXT_HEADER_H
#define DQI_TEXT_HEADER_H

#include <stdint.h>

#define DQI_TEXT_HEADER 4096 // bytes of a header, so that the data are aligned

// What follows a header.
typedef struct dqi_text_facts {
    int64_t start_ns; // receive time of the first block of the recording; DQ_NO_TIME: none
    uint64_t blocks;  // of the stream since then
    uint64_t bytes;   // of a block
    uint32_t slots;   // packets of a block
    uint32_t missing; // cells of the block that follows, of `cells`
    uint32_t cells;
    uint64_t number; // of the file
} dqi_text_facts;

// Write the header, DQI_TEXT_HEADER bytes. text: lines, or cards of 80 characters, of the script's keys; it
// leaves 1000 bytes for the others.
void dqi_dada_header(char *to, const char *text, const dqi_text_facts *f);
void dqi_guppi_header(char *to, const char *text, const dqi_text_facts *f);

#endif
