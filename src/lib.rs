#![no_std]
#![forbid(unsafe_code)]

pub mod application;
mod budget;
pub mod bully;
pub mod call;
pub mod cells;
pub mod config;
pub mod effects;
pub mod errata;
pub mod id;
pub mod invitation;
pub mod node;
pub mod provision;
#[cfg(feature = "shell")]
pub mod shell;
pub mod state;
pub mod station;
pub mod time;
pub mod timers;
pub mod wire;
