# Runs in a shared machine, in the folder that it shares with this one: each job.sh that comes, as the first process of namespaces of
# its own, so that nothing of it stays. What it printed is then in the files out and err, how it ended in code; that it runs no second
# time is on whoever puts the next one there, who removes job.sh before code.
while :; do
    if [ -e job.sh ] && [ ! -e code ]; then
        unshare --mount --pid --fork --kill-child sh -c 'mount -t proc proc /proc; mount -t tmpfs shm /dev/shm; sh ./job.sh; exit $?' \
            </dev/null >out 2>err
        echo $? >code.new
        mv code.new code
    fi
    sleep 0.3
done
