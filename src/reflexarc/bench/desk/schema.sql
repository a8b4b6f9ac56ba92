-- The returns desk's database. Money is integer cents, dates are ISO days.
CREATE TABLE customers (
  customer_id TEXT PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL,
  tier TEXT NOT NULL CHECK (tier IN ('standard', 'plus', 'vip')),
  customer_since TEXT NOT NULL, returns_last_12_months INTEGER NOT NULL
);
CREATE TABLE products (
  sku TEXT PRIMARY KEY, title TEXT NOT NULL, category TEXT NOT NULL,
  list_price_cents INTEGER NOT NULL, final_sale INTEGER NOT NULL, in_stock INTEGER NOT NULL
);
CREATE TABLE return_policies (
  category TEXT PRIMARY KEY, window_days INTEGER NOT NULL, restocking_percent INTEGER NOT NULL
);
CREATE TABLE orders (
  order_id TEXT PRIMARY KEY, customer_id TEXT NOT NULL REFERENCES customers,
  placed_on TEXT NOT NULL, status TEXT NOT NULL, shipping_cents INTEGER NOT NULL
);
CREATE TABLE order_lines (
  order_id TEXT NOT NULL REFERENCES orders, sku TEXT NOT NULL REFERENCES products,
  quantity INTEGER NOT NULL, unit_price_cents INTEGER NOT NULL, PRIMARY KEY (order_id, sku)
);
CREATE TABLE shipments (
  shipment_id TEXT PRIMARY KEY, order_id TEXT NOT NULL UNIQUE REFERENCES orders,
  carrier TEXT NOT NULL, status TEXT NOT NULL CHECK (status IN ('delivered', 'lost')),
  shipped_on TEXT NOT NULL, delivered_on TEXT,
  condition TEXT NOT NULL CHECK (condition IN ('intact', 'damaged', 'unknown'))
);
CREATE TABLE payments (
  payment_id TEXT PRIMARY KEY, order_id TEXT NOT NULL UNIQUE REFERENCES orders,
  method TEXT NOT NULL, amount_cents INTEGER NOT NULL, refunded_cents INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE return_requests (
  request_id TEXT PRIMARY KEY, queue_id TEXT NOT NULL, position INTEGER NOT NULL,
  order_id TEXT NOT NULL REFERENCES orders, sku TEXT NOT NULL REFERENCES products,
  quantity INTEGER NOT NULL, reason TEXT NOT NULL, comment TEXT NOT NULL, created_on TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'open'
    CHECK (status IN ('open', 'approved', 'rejected', 'refunded', 'in_review', 'waiting')),
  return_expected INTEGER NOT NULL DEFAULT 0, reject_reason TEXT
);
CREATE TABLE refunds (
  refund_id INTEGER PRIMARY KEY, request_id TEXT NOT NULL REFERENCES return_requests,
  payment_id TEXT NOT NULL REFERENCES payments, amount_cents INTEGER NOT NULL
);
CREATE TABLE remarks (
  remark_id INTEGER PRIMARY KEY, request_id TEXT NOT NULL REFERENCES return_requests,
  kind TEXT NOT NULL CHECK (kind IN ('note', 'review', 'question')), text TEXT NOT NULL
);
