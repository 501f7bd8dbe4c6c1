// port_map.c: maps of port ranges, built range by range.
#include "port_map.h"

#include <stdlib.h>

dqi_port_map *dqi_port_map_new(void) {
    dqi_port_map *m = calloc(1, sizeof *m);
    for (uint32_t k = 0; m && k < 256; k++)
        m->whole[k] = DQI_NO_RANK;
    return m;
}

void dqi_port_map_free(dqi_port_map *m) {
    for (uint32_t k = 0; m && k < 256; k++)
        free(m->page[k]);
    free(m);
}

static uint32_t *get_page(dqi_port_map *m, uint32_t high) {
    if (m->page[high]) return m->page[high];
    uint32_t *page = malloc(256 * sizeof *page);
    for (uint32_t k = 0; page && k < 256; k++)
        page[k] = m->whole[high];
    return m->page[high] = page;
}

static void put(uint32_t *slot, uint32_t rank, bool *hidden) {
    if (*slot == DQI_NO_RANK)
        *slot = rank;
    else
        *hidden = true;
}

bool dqi_port_map_add(dqi_port_map *m, uint16_t lo, uint16_t hi, uint32_t rank, bool *hidden) {
    for (uint32_t high = lo >> 8; high <= hi >> 8; high++) {
        uint32_t first = high == lo >> 8 ? lo & 0xff : 0, last = high == hi >> 8 ? hi & 0xff : 0xff;
        if (first == 0 && last == 0xff && !m->page[high]) {
            put(&m->whole[high], rank, hidden);
            continue;
        }
        uint32_t *page = get_page(m, high);
        if (!page) return false;
        for (uint32_t k = first; k <= last; k++)
            put(&page[k], rank, hidden);
    }
    return true;
}
