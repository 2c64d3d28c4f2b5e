# An outbox with dead events, and with keys that are blocked.
sendoff migrate
cat > block.toml <<'TOML'
[store]
url = "sqlite:shop.db"
[targets.billing]
on_exhausted = "block"
sink = { url = "inbox:sqlite:shop.db", create = false }
TOML
EVENT=$(sendoff enqueue orders.placed --key order-1)
OTHER=$(sendoff enqueue orders.placed --key order-2)
sendoff enqueue orders.placed --key order-3
sendoff enqueue orders.placed --key order-7 --target billing
BLOCKED=$(sendoff enqueue orders.placed --key order-8 --target billing)
sendoff run --sink inbox:sqlite:shop.db
sendoff run --config block.toml
printf 'EVENT=%s\nOTHER=%s\nBLOCKED=%s\n' "$EVENT" "$OTHER" "$BLOCKED" > variables
