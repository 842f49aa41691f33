// The few things of Node that are used here, so that its types are no dependency.

declare const process: {
  readonly env: Record<string, string | undefined>;
  readonly pid: number;
  on(signal: "SIGTERM" | "SIGINT", listener: () => void): void;
  removeListener(signal: "SIGTERM" | "SIGINT", listener: () => void): void;
};

declare module "node:crypto" {
  export function randomUUID(): string;
}

declare module "node:fs" {
  export function readFileSync(path: string, encoding: "utf8"): string;
}

declare module "node:os" {
  export function hostname(): string;
}
