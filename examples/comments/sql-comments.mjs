// Says in a comment of each SQL statement what a Node.js program is doing, and from which line it sends it.
//
// isotap (and whoever else reads sqlcommenter's comments) then names findings by it. It works below pg and mysql2, and so
// for TypeORM, knex, Sequelize and others that use them:
//
//     import pg from 'pg'                        // or: import mysql from 'mysql2'
//     import { install, action } from './sql-comments.mjs'
//     install({ pg })                            // or: install({ mysql })
//
//     app.use((req, res, next) => action(`${req.method} ${req.path}`, next))   // Express; once the route is known, its name
//
// A prepared statement that has a name keeps its text: pg refuses another one of that name.
import { AsyncLocalStorage } from 'node:async_hooks'
import { fileURLToPath } from 'node:url'
import path from 'node:path'

const current = new AsyncLocalStorage()
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
export function install ({ pg, mysql, root = process.cwd() }) {
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

function comment (root) {
  const pairs = []
  const name = current.getStore()
  if (name) {
    pairs.push(`controller='${encode(name)}'`)
  }
  const at = place(root)
  if (at) {
    pairs.push(`file='${encode(at.file)}'`, `line='${at.line}'`)
  }
  return pairs.length ? ` /*${pairs.join(',')}*/` : ''
}

// As sqlcommenter says: percent-encoded, and no quote that would end the value.
function encode (text) {
  return encodeURIComponent(text).replace(/'/g, '%27').replace(/\*/g, '%2A')
}

function place (root) {
  for (const line of (new Error().stack ?? '').split('\n')) {
    const found = /(?:file:\/\/)?(\/[^:()]+):(\d+):\d+\)?$/.exec(line)
    if (found && found[1] !== own && found[1].startsWith(root + path.sep) && !found[1].includes('/node_modules/')) {
      return { file: path.relative(root, found[1]), line: found[2] }
    }
  }
}
