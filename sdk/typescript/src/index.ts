/**
 * Workers and client of ringi, a durable workflow engine.
 *
 * A Worker takes tasks from a server, calls the function that stands for each
 * activity, and reports what became of it. A Client publishes definitions, starts
 * runs and looks after them.
 */
export { Client, isFinal } from "./client.js";
export type { Cause, ClientOptions, Done, EventOptions, Published, Run, Sent, Started, StartOptions, Step, WatchOptions } from "./client.js";
export { Cancelled, Failure, RingiError } from "./error.js";
export type { CancelReason, FailureOptions } from "./error.js";
export { Decimal, parse, stringify } from "./exact.js";
export type { Json } from "./exact.js";
export type { Activity, QueueOptions } from "./lane.js";
export type { Task } from "./task.js";
export { Worker } from "./worker.js";
export type { WorkerOptions } from "./worker.js";
