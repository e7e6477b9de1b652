//! The name server: routes of all brokers that register with it.
