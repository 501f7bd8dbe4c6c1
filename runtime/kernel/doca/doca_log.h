// doca_log.h: log macros of a sample's host code, without effect in a kernel's source.
#ifndef DOCA_LOG_H
#define DOCA_LOG_H

#define DOCA_LOG_REGISTER(...)
#define DOCA_LOG(...)      ((void)0)
#define DOCA_LOG_CRIT(...) ((void)0)
#define DOCA_LOG_ERR(...)  ((void)0)
#define DOCA_LOG_WARN(...) ((void)0)
#define DOCA_LOG_INFO(...) ((void)0)
#define DOCA_LOG_DBG(...)  ((void)0)
#define DOCA_LOG_TRC(...)  ((void)0)

#endif
