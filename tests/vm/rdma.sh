# For a script to begin with: two soft-RoCE devices, rxe0 and rxe1, on the two ends of a veth pair: 10.9.0.1 and 10.9.0.2, fd09::1 and fd09::2.
# On a shared machine they are those of the script before, and are made anew.
for n in 0 1; do
    rdma link del rxe$n
    ip -6 rule del pref 5
    ip -6 rule del pref 10
done 2>/dev/null
ip link del v0 2>/dev/null
ip link add v0 type veth peer name v1
for n in 0 1; do
    ip addr add 10.9.0.$((n + 1))/24 dev v$n
    ip addr add fd09::$((n + 1))/64 dev v$n nodad
    ip link set v$n mtu 4200 up
done
for f in all default v0 v1; do
    echo 1 >/proc/sys/net/ipv4/conf/$f/accept_local
    echo 0 >/proc/sys/net/ipv4/conf/$f/rp_filter
done
rdma link add rxe0 type rxe netdev v0 || exit
rdma link add rxe1 type rxe netdev v1 || exit
ulimit -l unlimited
# IPv6 takes its own addresses to be behind lo, and knows no accept_local: what goes from one to the other has routes of its own.
if ip -6 rule add pref 32000 lookup local 2>/dev/null; then ip -6 rule del pref 0; fi
for n in 0 1; do
    ip -6 rule add pref 5 iif v$n lookup local
    ip -6 rule add pref 10 to fd09::$((n + 1)) lookup 10$n
    ip -6 route add fd09::$((n + 1)) dev v$((1 - n)) src fd09::$((2 - n)) table 10$n
done
