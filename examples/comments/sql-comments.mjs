// Says in a comment of each SQL statement what a Node.js program is doing, and from which line it sends it.
//
// isotap (and whoever else reads sqlcommenter's comments) then names findings by it. It works below pg and mysql2, and so
// for TypeORM, Sequelize and others that use them:
//
//     import pg from 'pg'                        // or: import mysql from 'mysql2'
//     import { install, action } from './sql-comments.mjs'
//     install({ pg })                            // or: install({ mysql }); for knex also: install({ pg, knex })
//
// Prisma (7) has comments of its own: withPlaces(new PrismaClient({ adapter, comments: [prisma()] })).
//
//     app.use((req, res, next) => action(`${req.method} ${req.path}`, next))   // Express; once the route is known, its name
//
// A prepared statement that has a name keeps its text: pg refuses another one of that name.
import { AsyncLocalStorage } from 'node:async_hooks'
import { fileURLToPath } from 'node:url'
import path from 'node:path'

const current = new AsyncLocalStorage()
const made = new AsyncLocalStorage() // where the query builder was made that sends
const own = fileURLToPath(import.meta.url)

/** Runs a function whose statements belong to what the name says, and returns what it returns. */
export function action (name, run) {
  return current.run(name, () => {
    const result = run()
    // What begins when somebody waits for it, as a query builder of knex does, begins here.
    return typeof result?.then === 'function' ? Promise.resolve(result) : result
  })
}

/** Adds comments to what the given modules send. Root is the directory whose files count as the program's. */
export function install ({ pg, mysql, knex, root = process.cwd() }) {
  if (knex) {
    wrapBuilders(knex.Client.prototype, root)
  }
  if (pg) {
    wrap(pg.Client.prototype, 'query', root)
  }
  if (mysql) {
    const connection = Object.getPrototypeOf(mysql.Connection.prototype)
    const holder = Object.hasOwn(mysql.Connection.prototype, 'query') ? mysql.Connection.prototype : connection
    wrap(holder, 'query', root)
    wrap(holder, 'execute', root)
  }
}

function wrap (prototype, method, root) {
  const send = prototype[method]
  prototype[method] = function (sql, ...rest) {
    const said = comment(root)
    if (said && typeof sql === 'string') {
      sql += said
    } else if (said && sql && typeof sql === 'object' && !sql.name) {
      for (const field of ['text', 'sql']) {
        if (typeof sql[field] === 'string' && !sql[field].endsWith('*/')) {
          sql[field] += said
        }
      }
    }
    return send.call(this, sql, ...rest)
  }
}

// A query builder sends its statement when somebody waits for it, and then no stack leads to where it was made.
function wrapBuilders (client, root) {
  for (const method of ['queryBuilder', 'raw']) {
    const make = client[method]
    client[method] = function (...args) {
      return from(place(root), make.apply(this, args))
    }
  }
}

// Has what sends a statement when somebody waits for it send it as from a place.
function from (at, later) {
  for (const method of ['then', 'catch', 'finally', 'requestTransaction']) {
    const begin = later?.[method]
    if (at && typeof begin === 'function') {
      later[method] = function (...args) {
        return made.run(at, () => begin.apply(this, args))
      }
    }
  }
  return later
}

/** Returns a client of Prisma's whose statements say from which line they come. */
export function withPlaces (client, root = process.cwd()) {
  return new Proxy(client, {
    get (target, name) {
      const value = target[name]
      if (typeof value === 'object' && value) {
        return withPlaces(value, root)
      }
      if (typeof value !== 'function') {
        return value
      }
      return (...args) => {
        if (name === '$transaction' && typeof args[0] === 'function') {
          const [run, ...options] = args
          return value.call(target, (tx) => run(withPlaces(tx, root)), ...options)
        }
        return from(place(root), value.apply(target, args))
      }
    }
  })
}

/** Returns what Prisma takes among its comments. */
export function prisma (root = process.cwd()) {
  return () => said(root)
}

function said (root) {
  const name = current.getStore()
  return { ...(name && { controller: name }), ...(made.getStore() ?? place(root)) }
}

function comment (root) {
  const pairs = Object.entries(said(root)).map(([key, value]) => `${key}='${encode(value)}'`)
  return pairs.length ? ` /*${pairs.join(',')}*/` : ''
}

// As sqlcommenter says: percent-encoded, and no quote that would end the value.
function encode (text) {
  return encodeURIComponent(text).replace(/'/g, '%27').replace(/\*/g, '%2A')
}

function place (root) {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 100 // libraries stand between
  const stack = new Error().stack ?? ''
  Error.stackTraceLimit = limit
  for (const line of stack.split('\n')) {
    const found = /(?:file:\/\/)?(\/[^:()]+):(\d+):\d+\)?$/.exec(line)
    if (found && found[1] !== own && found[1].startsWith(root + path.sep) && !found[1].includes('/node_modules/')) {
      return { file: path.relative(root, found[1]), line: found[2] }
    }
  }
}
