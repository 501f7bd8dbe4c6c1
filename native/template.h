// template.h: templates, for tx.c; and the project's one mixing function.
#ifndef DQI_TEMPLATE_H
#define DQI_TEMPLATE_H

#include "dqi.h"

uint32_t dqi_template_len(const dq_template *t); // bytes of each packet
uint64_t dqi_mix64(uint64_t z);                  // a well-mixed function of z

#endif
