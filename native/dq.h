// dq.h: the public headers of the engine, as used by Go.
#ifndef DQ_H
#define DQ_H

#include "binding/dq_binding.h"
#include "compute/dq_compute.h"
#include "core/dq_burst.h"
#include "core/dq_core.h"
#include "core/dq_ledger.h"
#include "crash_reporter.h"
#include "cuda/dq_cuda.h"
#include "engine/dpdk/dq_dpdk.h"
#include "engine/replay/dq_replay.h"
#include "gpunetio/host/dq_gn.h"
#include "packet/dq_ops.h"
#include "packet/dq_rules.h"
#include "packet/dq_template.h"
#include "pipeline/connection/dq_queue_pair.h"
#include "pipeline/connection/dq_rma.h"
#include "pipeline/dq_figures.h"
#include "pipeline/dq_op.h"
#include "pipeline/dq_pipeline.h"
#include "pipeline/dq_session.h"
#include "pipeline/resources/dq_resources.h"
#include "pipeline/stages/dq_stages.h"
#include "program/dq_program.h"
#include "reorder/dq_reorder.h"
#include "writer/dq_writer.h"

#endif
