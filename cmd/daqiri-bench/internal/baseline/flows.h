// flows.h: what a flow table costs for each packet, for daqiri-bench: the engine's table and nothing
// around it.
#ifndef DQ_BASELINE_FLOWS_H
#define DQ_BASELINE_FLOWS_H

#include "core/dq_core.h"

typedef struct dq_baseline_flows {
    uint32_t rules; // of ten, four on addresses and ports, two on a port, three on a prefix, one on a range
                    // of ports
    double seconds;
} dq_baseline_flows;

// Classifies 1024 UDP frames of as many flows, each of which matches a rule, again and again. *ns: CPU
// time of a packet, in the median of many rounds. 0 or a negative dq_err in words. Blocks.
int dq_baseline_flows_run(const dq_baseline_flows *conf, double *ns, dq_diag *diag);

#endif
