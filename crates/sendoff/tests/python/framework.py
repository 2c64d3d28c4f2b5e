"""A program of the framework: its own code makes its outbox table and fills it, in its own transactions.

Arguments: the database's address, how many orders to place. Prints the name of the outbox table.
"""

import sys

from protean import Domain
from protean.fields import Identifier, Integer

address, count = sys.argv[1], int(sys.argv[2])

domain = Domain(
    name="Shop",
    config={
        "databases": {"default": {"provider": "postgresql", "database_uri": address}},
        "event_processing": "async",
        "command_processing": "sync",
        "enable_outbox": True,
        "server": {"default_subscription_type": "stream"},
    },
)


@domain.event(part_of="Order")
class OrderPlaced:
    order_id = Identifier(required=True)
    total = Integer(required=True)


@domain.aggregate
class Order:
    total = Integer(required=True)

    def place(self):
        self.raise_(OrderPlaced(order_id=self.id, total=self.total))


domain.init(traverse=False)
with domain.domain_context():
    domain.setup_database()
    orders = domain.repository_for(Order)
    for number in range(count):
        order = Order(total=number)
        order.place()
        orders.add(order)
    outbox = domain._get_outbox_repo("default")
    found = outbox.find_unprocessed(limit=count + 10)
    assert len(found) == count, f"{len(found)} of {count} are in its outbox"
    print(outbox.meta_.part_of.meta_.schema_name)
