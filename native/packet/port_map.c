// port_map.c: maps of port ranges, built range by range.
#include "packet/port_map.h"

#include <stdlib.h>
#include <string.h>

// Allocates a page with one rank; NULL: no memory.
static dqi_port_page *new_page(dqi_port_map *m, uint32_t rank) {
    dqi_port_page *p = malloc(sizeof *p);
    for (uint32_t k = 0; p && k < 256; k++)
        p->rank[k] = rank;
    if (p) {
        p->next = m->pages;
        m->pages = p;
    }
    return p;
}

dqi_port_map *dqi_port_map_new(void) {
    dqi_port_map *m = calloc(1, sizeof *m);
    if (m) m->empty = new_page(m, DQI_NO_RANK);
    for (uint32_t k = 0; m && m->empty && k < 256; k++)
        m->page[k] = m->empty->rank;
    if (m && m->empty) return m;
    free(m);
    return NULL;
}

void dqi_port_map_free(dqi_port_map *m) {
    for (dqi_port_page *p = m ? m->pages : NULL, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    free(m);
}

// Returns the unshared page of these ports; NULL: no memory.
static uint32_t *own_page(dqi_port_map *m, uint32_t high) {
    if (m->own[high]) return m->page[high];
    dqi_port_page *p = new_page(m, DQI_NO_RANK);
    if (!p) return NULL;
    memcpy(p->rank, m->page[high], sizeof p->rank);
    m->own[high] = true;
    return m->page[high] = p->rank;
}

static bool add_to_page(dqi_port_map *m, uint32_t high, uint32_t first, uint32_t last, uint32_t rank,
                        bool *hidden) {
    uint32_t *page = own_page(m, high);
    for (uint32_t k = first; page && k <= last; k++) {
        if (page[k] == DQI_NO_RANK)
            page[k] = rank;
        else
            *hidden = true;
    }
    return page != NULL;
}

bool dqi_port_map_add(dqi_port_map *m, uint16_t lo, uint16_t hi, uint32_t rank, bool *hidden) {
    dqi_port_page *whole = NULL; // shared by upper bytes that the range covers fully and no other range has
    for (uint32_t high = lo >> 8; high <= hi >> 8; high++) {
        uint32_t first = high == lo >> 8 ? lo & 0xff : 0, last = high == hi >> 8 ? hi & 0xff : 0xff;
        bool all = first == 0 && last == 0xff;
        if (all && m->page[high] == m->empty->rank) {
            if (!whole && !(whole = new_page(m, rank))) return false;
            m->page[high] = whole->rank;
        } else if (all && !m->own[high]) {
            *hidden = true; // all ports have one rank already
        } else if (!add_to_page(m, high, first, last, rank, hidden)) {
            return false;
        }
    }
    return true;
}
