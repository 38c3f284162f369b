// Files that are encrypted but open without a password: their owner only forbade printing or copying in a viewer (ISO 32000-2 §7.6).
// Only streams are decrypted, because text stands in nothing else.
import { createCipheriv, createDecipheriv, createHash } from "node:crypto";

/** What the file says about its encryption; strings are bytes, one character each. */
export interface Encryption {
  /** V and R: the kind of the algorithm and of its key. */
  readonly version: number;
  readonly revision: number;
  readonly bits: number;
  readonly owner: string;
  readonly user: string;
  /** The key, encrypted for the user. */
  readonly userKey: string;
  readonly permissions: number;
  readonly withMetadata: boolean;
  /** First part of the file's identifier. */
  readonly id: string;
  /** How streams are encrypted in files that choose: `V2`, `AESV2`, `AESV3`, or `None`. */
  readonly method: string | undefined;
}

export type Decrypt = (bytes: Buffer, number: number, generation: number) => Buffer | undefined;

const PADDING = Buffer.from("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a", "hex");
const bytesOf = (text: string) => Buffer.from(text, "latin1");
const md5 = (...parts: Buffer[]) => createHash("md5").update(Buffer.concat(parts)).digest();

/** Undefined when it takes a password, or is of a kind that is not known. */
export function decryption(file: Encryption): Decrypt | undefined {
  const key = file.version === 5 ? newKey(file) : oldKey(file);
  if (key === undefined) return undefined;
  const method = file.version < 4 ? "V2" : file.method;
  if (method === "None") return (bytes) => bytes;
  if (method === "AESV3") return (bytes) => aes(key, bytes);
  if (method !== "V2" && method !== "AESV2") return undefined;
  return (bytes, number, generation) => {
    const place = Buffer.from([number, number >> 8, number >> 16, generation, generation >> 8]);
    const salt = bytesOf(method === "AESV2" ? "sAlT" : "");
    const own = md5(key, place, salt).subarray(0, Math.min(key.length + 5, 16));
    return method === "AESV2" ? aes(own, bytes) : rc4(own, bytes);
  };
}

/** Versions 1 to 4: from the empty password and what stands in the file. */
function oldKey(file: Encryption): Buffer | undefined {
  const { version, revision, permissions } = file;
  if (![1, 2, 4].includes(version)) return undefined;
  const size = version === 4 ? 16 : version === 1 ? 5 : file.bits / 8;
  if (!Number.isInteger(size) || size < 5 || size > 16) return undefined;
  const signed = Buffer.alloc(4);
  signed.writeInt32LE(permissions | 0);
  const mark = Buffer.alloc(revision >= 4 && !file.withMetadata ? 4 : 0, 0xff);
  let key = md5(PADDING, bytesOf(file.owner).subarray(0, 32), signed, bytesOf(file.id), mark).subarray(0, size);
  if (revision >= 3) for (let round = 0; round < 50; round++) key = md5(key).subarray(0, size);
  const user = bytesOf(file.user);
  if (revision < 3) return rc4(key, PADDING).equals(user.subarray(0, 32)) ? key : undefined;
  let check: Buffer = md5(PADDING, bytesOf(file.id));
  for (let round = 0; round < 20; round++) {
    const turned = key.map((byte) => byte ^ round);
    check = rc4(turned, check);
  }
  return check.equals(user.subarray(0, 16)) ? key : undefined;
}

/** Version 5: the key stands in the file, encrypted with a hash of the password. */
function newKey({ revision, user, userKey }: Encryption): Buffer | undefined {
  const known = bytesOf(user);
  const locked = bytesOf(userKey).subarray(0, 32);
  if (known.length < 48 || locked.length < 32 || (revision !== 5 && revision !== 6)) return undefined;
  const hash = revision === 5 ? (salt: Buffer) => createHash("sha256").update(salt).digest() : slowHash;
  if (!hash(known.subarray(32, 40)).equals(known.subarray(0, 32))) return undefined;
  const decipher = createDecipheriv("aes-256-cbc", hash(known.subarray(40, 48)), Buffer.alloc(16)).setAutoPadding(false);
  return Buffer.concat([decipher.update(locked), decipher.final()]);
}

/** ISO 32000-2, algorithm 2.B, for the empty password. */
function slowHash(salt: Buffer): Buffer {
  let key = createHash("sha256").update(salt).digest();
  for (let round = 0, last = 0; round < 64 || last > round - 32; round++) {
    const cipher = createCipheriv("aes-128-cbc", key.subarray(0, 16), key.subarray(16, 32)).setAutoPadding(false);
    const mixed = cipher.update(Buffer.concat(Array.from({ length: 64 }, () => key)));
    const sum = mixed.subarray(0, 16).reduce((total, byte) => total + byte, 0);
    key = createHash(["sha256", "sha384", "sha512"][sum % 3] ?? "sha256")
      .update(mixed)
      .digest();
    last = mixed.at(-1) ?? 0;
  }
  return key.subarray(0, 32);
}

/** The first 16 bytes are the vector; a damaged end is left as it is. */
function aes(key: Buffer, bytes: Buffer): Buffer {
  const body = bytes.subarray(16, bytes.length - (bytes.length % 16));
  if (body.length === 0) return Buffer.alloc(0);
  const decipher = createDecipheriv(key.length === 32 ? "aes-256-cbc" : "aes-128-cbc", key, bytes.subarray(0, 16));
  const plain = Buffer.concat([decipher.setAutoPadding(false).update(body), decipher.final()]);
  const padding = plain.at(-1) ?? 0;
  return padding >= 1 && padding <= 16 ? plain.subarray(0, plain.length - padding) : plain;
}

/** Written out: OpenSSL has it no more. */
function rc4(key: Uint8Array, bytes: Buffer): Buffer {
  const state = Uint8Array.from({ length: 256 }, (_, index) => index);
  const at = (index: number) => state[index] ?? 0;
  const swap = (a: number, b: number) => {
    const held = at(a);
    state[a] = at(b);
    state[b] = held;
  };
  for (let index = 0, other = 0; index < 256; index++) {
    other = (other + at(index) + (key[index % key.length] ?? 0)) & 255;
    swap(index, other);
  }
  const out = Buffer.allocUnsafe(bytes.length);
  let a = 0;
  let b = 0;
  for (let index = 0; index < bytes.length; index++) {
    a = (a + 1) & 255;
    b = (b + at(a)) & 255;
    swap(a, b);
    out[index] = (bytes[index] ?? 0) ^ at((at(a) + at(b)) & 255);
  }
  return out;
}
