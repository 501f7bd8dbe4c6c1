# For scripts that drive dpdk-testpmd: testpmd ARGS starts it with its prompt, say COMMAND WORDS types a command and
# waits until it says WORDS, which it must not have said before. What it says is in the file `log`.
testpmd() {
    mkfifo prompt
    stdbuf -oL dpdk-testpmd "$@" <prompt >log 2>&1 &
    testpmd=$!
    exec 9>prompt
    await "Done$"
}
say() {
    echo "$1" >&9
    await "$2"
}
await() {
    while kill -0 $testpmd && sleep 0.2; do
        if grep -q "$1" log; then return; fi
    done
    cat log
    echo "testpmd never said: $1"
    exit 1
}
