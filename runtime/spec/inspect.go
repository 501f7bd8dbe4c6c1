package spec

import (
	"maps"
	"slices"
)

// Plan is the resolved configuration, with defaults and engines, as printed by daqiri-run inspect. Its JSON form has a stable order.
type Plan struct {
	Source        string          `json:"source"`
	Version       int             `json:"version"`
	StreamType    string          `json:"stream_type"`
	MasterCore    int             `json:"master_core"`
	LogLevel      string          `json:"log_level"`
	DrainNS       int64           `json:"drain_ns"`
	Loopback      *Loopback       `json:"loopback,omitempty"`
	TxMetaBuffers int             `json:"tx_meta_buffers"`
	RxMetaBuffers int             `json:"rx_meta_buffers"`
	MemoryRegions []PlanRegion    `json:"memory_regions"`
	Interfaces    []PlanInterface `json:"interfaces"`
	Sections      []string        `json:"sections,omitempty"` // other top-level sections
}

// PlanRegion is a region and its users. StrideBytes is 0 here: it depends on the engines, so session.Plan sets it.
type PlanRegion struct {
	*MemoryRegion
	StrideBytes int      `json:"stride_bytes,omitempty"`
	UsedBy      []string `json:"used_by"`
}

// PlanInterface is an interface and its engine.
type PlanInterface struct {
	Name         string        `json:"name"`
	Address      string        `json:"address"`
	Engine       string        `json:"engine"`
	SocketConfig *SocketConfig `json:"socket_config,omitempty"`
	RoCEConfig   *RoCEConfig   `json:"roce_config,omitempty"`
	Replay       *Replay       `json:"replay,omitempty"`
	RX           *RX           `json:"rx,omitempty"`
	TX           *TX           `json:"tx,omitempty"`
}

// Inspect returns the plan of a configuration. The plan refers to parts of the configuration.
func Inspect(c *Config) *Plan {
	p := &Plan{
		Source: c.File, Version: c.Version, StreamType: c.StreamType,
		MasterCore: c.MasterCore, LogLevel: c.LogLevel, DrainNS: c.DrainNS,
		TxMetaBuffers: c.TxMetaBuffers, RxMetaBuffers: c.RxMetaBuffers,
		Sections: slices.Sorted(maps.Keys(c.Extra)),
	}
	if c.Loopback.Mode != "" {
		p.Loopback = &c.Loopback
	}
	for _, r := range c.MemoryRegions {
		p.MemoryRegions = append(p.MemoryRegions, PlanRegion{MemoryRegion: r, UsedBy: c.users(r.Name)})
	}
	for _, i := range c.Interfaces {
		p.Interfaces = append(p.Interfaces, PlanInterface{
			Name: i.Name, Address: i.Address, Engine: i.EngineName(),
			SocketConfig: i.SocketConfig, RoCEConfig: i.RoCEConfig, Replay: i.Replay, RX: i.RX, TX: i.TX,
		})
	}
	return p
}

// Queued reports whether a queue uses the region.
func (c *Config) Queued(region string) bool {
	for _, i := range c.Interfaces {
		for _, s := range i.sides() {
			if slices.ContainsFunc(s.queues, func(q *Queue) bool { return slices.Contains(q.MemoryRegions, region) }) {
				return true
			}
		}
	}
	return false
}

// users returns the queues and reorder configs that use a region, as rx_port.rx.rx_q_0.
func (c *Config) users(region string) []string {
	users := []string{}
	for _, i := range c.Interfaces {
		for _, s := range i.sides() {
			for _, q := range s.queues {
				if slices.Contains(q.MemoryRegions, region) {
					users = append(users, i.Name+"."+s.name+"."+q.Name)
				}
			}
		}
		if i.RX == nil {
			continue
		}
		for _, r := range i.RX.ReorderConfigs {
			if r.MemoryRegion == region {
				users = append(users, i.Name+"."+r.Name)
			}
		}
	}
	return users
}
