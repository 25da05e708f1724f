//! The gateway: commands and servers over the engine.
