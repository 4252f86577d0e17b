// One deposit with the library that LIBRARY names: pg, mysql2, typeorm, knex, sequelize or prisma.
import { createRequire } from 'node:module'
import { action, install, prisma, withPlaces } from './sql-comments.mjs'

const url = process.env.DATABASE_URL
const postgres = url.startsWith('postgres:')
const { default: knex } = await import('knex')
if (process.env.LIBRARY === 'prisma') {
  // it has comments of its own
} else if (postgres) {
  install({ pg: (await import('pg')).default, knex })
} else {
  install({ mysql: (await import('mysql2')).default, knex })
}

async function viaPg () {
  const { default: pg } = await import('pg')
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('BEGIN')
  const { rows } = await client.query('SELECT balance FROM account WHERE id = $1', [1]) // READ pg
  await client.query('UPDATE account SET balance = $1 WHERE id = 1', [rows[0].balance + 10]) // WRITE pg
  await client.query('COMMIT')
  await client.end()
}

async function viaMySQL2 () {
  const { default: mysql } = await import('mysql2/promise')
  const connection = await mysql.createConnection(url)
  await connection.beginTransaction()
  const [rows] = await connection.execute('SELECT balance FROM account WHERE id = ?', [1]) // READ mysql2
  await connection.query('UPDATE account SET balance = ? WHERE id = 1', [rows[0].balance + 10]) // WRITE mysql2
  await connection.commit()
  await connection.end()
}

async function viaTypeORM () {
  const { DataSource, EntitySchema } = await import('typeorm')
  const Account = new EntitySchema({
    name: 'account', columns: { id: { type: 'int', primary: true }, balance: { type: 'int' } }
  })
  const source = await new DataSource({ type: postgres ? 'postgres' : 'mysql', url, entities: [Account] }).initialize()
  await source.transaction(async (manager) => {
    const account = await manager.findOneBy(Account, { id: 1 }) // READ typeorm
    account.balance += 10
    await manager.save(Account, account) // WRITE typeorm
  })
  await source.destroy()
}

async function viaKnex () {
  const db = knex({ client: postgres ? 'pg' : 'mysql2', connection: url })
  await db.transaction(async (trx) => {
    const account = await trx('account').where({ id: 1 }).first() // READ knex
    await trx('account').where({ id: 1 }).update({ balance: account.balance + 10 }) // WRITE knex
  })
  await db.destroy()
}

async function viaSequelize () {
  const { DataTypes, Sequelize } = await import('sequelize')
  const sequelize = new Sequelize(url, { logging: false, dialect: postgres ? 'postgres' : 'mysql' })
  const Account = sequelize.define('account', {
    id: { type: DataTypes.INTEGER, primaryKey: true }, balance: DataTypes.INTEGER
  }, { freezeTableName: true, timestamps: false })
  await sequelize.transaction(async (transaction) => {
    const account = await Account.findByPk(1, { transaction }) // READ sequelize
    account.balance += 10
    await account.save({ transaction }) // WRITE sequelize
  })
  await sequelize.close()
}

async function viaPrisma () {
  const { PrismaClient } = createRequire(import.meta.url)('./prisma-client/index.js')
  const { PrismaPg } = postgres ? await import('@prisma/adapter-pg') : {}
  const { PrismaMariaDb } = postgres ? {} : await import('@prisma/adapter-mariadb')
  const adapter = postgres ? new PrismaPg({ connectionString: url }) : new PrismaMariaDb(url.replace('mysql:', 'mariadb:'))
  const client = withPlaces(new PrismaClient({ adapter, comments: [prisma()] }))
  await client.$transaction(async (tx) => {
    const account = await tx.account.findUnique({ where: { id: 1 } }) // READ prisma
    await tx.account.update({ where: { id: 1 }, data: { balance: account.balance + 10 } }) // WRITE prisma
  })
  await client.$disconnect()
}

const all = { pg: viaPg, mysql2: viaMySQL2, typeorm: viaTypeORM, knex: viaKnex, sequelize: viaSequelize, prisma: viaPrisma }
await action('accounts:deposit', all[process.env.LIBRARY])
