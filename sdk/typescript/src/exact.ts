import { randomUUID } from "node:crypto";

/**
 * JSON in which no digit gets lost. A number is read as a `number` if that is the
 * same number, digit for digit: 1200, 0.1, 99.95. One that a `number` would round
 * is read as a `bigint` if it is whole, and as a `Decimal` if it is not. All
 * three are written as they are.
 */
export type Json = null | boolean | number | bigint | Decimal | string | Json[] | { [name: string]: Json };

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;

/** A number by its digits. Hand `text` to the decimal library of your choice. */
export class Decimal {
  readonly text: string;

  constructor(text: string) {
    NUMBER.lastIndex = 0;
    if (NUMBER.exec(text)?.[0] !== text) throw new TypeError(`${JSON.stringify(text)} is not a number of JSON`);
    this.text = text;
  }

  toString(): string {
    return this.text;
  }

  /** For JSON.stringify, which cannot write it as a number. */
  toJSON(): string {
    return this.text;
  }
}

/** Text that is JSON already and is written as it is. */
export class Encoded {
  constructor(readonly text: string) {}
}

/** Read JSON. Throws a SyntaxError. */
export function parse(text: string): any {
  const mark = `#${randomUUID()}:`; // no text holds it but ours
  const marked = markLossy(text, mark);
  if (marked === text) return JSON.parse(text);
  return JSON.parse(marked, (_name, value) => (typeof value === "string" && value.startsWith(mark) ? exactly(value.slice(mark.length)) : value));
}

/** Write JSON. Throws a TypeError for what it cannot hold, as NaN. */
export function stringify(value: unknown): string {
  return write(value) ?? "null";
}

/** Turns numbers that would be rounded into marked strings. */
function markLossy(text: string, mark: string): string {
  let out = "";
  let copied = 0;
  for (let at = 0; at < text.length; ) {
    const c = text.charCodeAt(at);
    if (c === 0x22) {
      at = endOfString(text, at);
      continue;
    }
    NUMBER.lastIndex = at;
    const token = c === 0x2d || (c >= 0x30 && c <= 0x39) ? NUMBER.exec(text)?.[0] : undefined;
    if (token !== undefined && !isHeld(token)) {
      out += `${text.slice(copied, at)}"${mark}${token}"`;
      copied = at + token.length;
    }
    at += token?.length ?? 1;
  }
  return out + text.slice(copied);
}

/** The place behind the string that begins at a quote. */
function endOfString(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text[end - 1 - escapes] === "\\") escapes++;
    if (escapes % 2 === 0) return end + 1;
  }
  return text.length; // it never ends, and JSON.parse will say so
}

/** Whether a number of JavaScript is the same number. */
function isHeld(token: string): boolean {
  if (token.length <= 15 && !/[eE]/.test(token)) return true; // so many digits always fit
  const value = Number(token);
  return Number.isFinite(value) && canonical(token) === canonical(String(value));
}

/** One text for each number: digits without zeros around them, and an exponent. */
function canonical(token: string): string {
  const negative = token.startsWith("-");
  const [mantissa = "", exponent = "0"] = token.slice(negative ? 1 : 0).split(/[eE]/);
  const [whole = "", fraction = ""] = mantissa.split(".");
  const digits = (whole + fraction).replace(/^0+/, "");
  const kept = digits.replace(/0+$/, "");
  if (kept === "") return "0";
  return `${negative ? "-" : ""}${kept}e${BigInt(exponent.replace("+", "")) - BigInt(fraction.length) + BigInt(digits.length - kept.length)}`;
}

function exactly(token: string): bigint | Decimal {
  return /[.eE]/.test(token) ? new Decimal(token) : BigInt(token);
}

/** undefined for what JSON leaves out, as JSON.stringify does. */
function write(value: unknown): string | undefined {
  switch (typeof value) {
    case "string":
    case "boolean":
      return JSON.stringify(value);
    case "bigint":
      return value.toString();
    case "number":
      if (!Number.isFinite(value)) throw new TypeError(`${value} is not JSON`);
      return String(value);
    case "object":
      return value === null ? "null" : writeObject(value);
    default:
      return undefined;
  }
}

function writeObject(value: object): string | undefined {
  if (value instanceof Decimal || value instanceof Encoded) return value.text;
  if (Array.isArray(value)) return `[${value.map((item) => write(item) ?? "null").join(",")}]`;
  if ("toJSON" in value && typeof value.toJSON === "function") return write(value.toJSON());
  const members: string[] = [];
  for (const [name, member] of Object.entries(value)) {
    const text = write(member);
    if (text !== undefined) members.push(`${JSON.stringify(name)}:${text}`);
  }
  return `{${members.join(",")}}`;
}
