-- The Ethernet header.
return {
  name = "ethernet",
  title = "Ethernet header",
  document = "IEEE 802.3 (2022), section 3.2",
  layer = "frame",
  { "destination", "mac" },
  { "source", "mac" },
  { "type", 16, values = { [0x0800] = "ipv4", [0x0806] = "arp", [0x8100] = "vlan", [0x86dd] = "ipv6", [0xaefe] = "ecpri" } },
  vectors = { { hex = "020000000002 020000000001 0800 00", destination = "02:00:00:00:00:02", source = "02:00:00:00:00:01", type = "ipv4" } },
}
